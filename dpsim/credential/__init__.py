"""Certificates: an operator's keys, Open Badges 3.0 credentials, their status list, and verifying.

Nothing here knows a screen or the database. It needs PyJWT and cryptography, so it is loaded where a
certificate is made or verified, and by nothing else.
"""
