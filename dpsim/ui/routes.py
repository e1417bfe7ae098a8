"""What the server answers besides pages: the issuer's DID document, and the signed list of what was revoked.

Whoever verifies a certificate may read both, from any page.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dpsim.base_url import base_url
from dpsim.checks import InputError

FOR_ALL = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=60"}
Answer = Callable[[Request], Response]


def routes() -> list[Route]:
    """The routes. A proxy may keep the base URL's path or take it off."""
    return [
        Route(prefix + path, answer)
        for prefix in dict.fromkeys(("", _path()))
        for path, answer in (
            ("/.well-known/did.json", did_document),
            ("/did.json", did_document),
            ("/status/1", revoked),
        )
    ]


def _path() -> str:
    try:
        return urlsplit(base_url()).path
    except InputError:  # the certificate's page says what is wrong with the setting
        return ""


def _guarded(answer: Answer) -> Answer:
    """`answer`, with a message where the settings or the database are not as they should be."""

    @wraps(answer)
    def guarded(request: Request) -> Response:
        from dpsim.database import UnreachableError

        try:
            return answer(request)
        except InputError as error:
            return JSONResponse({"error": f"the setting {error.field} {error.rule}"}, 500)
        except UnreachableError as error:
            return JSONResponse({"error": str(error)}, 503)

    return guarded


@_guarded
def did_document(_: Request) -> Response:
    """The public keys, former ones too."""
    from dpsim.credential.operator import operator

    issuer = operator()
    return _nothing() if issuer is None else JSONResponse(issuer.did_document(), headers=FOR_ALL)


@_guarded
def revoked(_: Request) -> Response:
    """The status list, signed anew."""
    from dpsim.credential.operator import operator
    from dpsim.credential.status import status_list
    from dpsim.ui.learner import opened

    issuer, kept = operator(), opened()
    if issuer is None or kept is None:
        return _nothing()
    signed = status_list(issuer, kept.revoked_indices(), time.time())
    return Response(signed, media_type="application/jwt", headers=FOR_ALL)


def _nothing() -> Response:
    return JSONResponse({"error": "no certificates are issued here"}, 404)
