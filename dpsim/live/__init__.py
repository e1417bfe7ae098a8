"""Live runs: a scenario on this machine's devices, one process per rank, through torch.distributed.

The processes (`dpsim.live.worker` and what it imports) are the only place where torch is loaded. Whoever
starts them (`dpsim.live.launch`) needs none, so a broken torch costs a sentence and nothing else.
"""
