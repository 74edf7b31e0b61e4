"""The real orchestrator and worker code on a simulated clock and store, with faults from a seed.

A world has one memory store (the "server"), a few orchestrators, workers and a client. Each of them
reaches the store through its own `Wire`, which may lose an answer, do a call late, hold everything
up (a paused process), or die. Judges look at what the handlers themselves noted and at the store's
records; they share no code with the engine.

In a second world the hot and the cold store are two (`tiered`): there the hot one also loses all
its data or goes back to how it was, and the cold one is away for a while.
"""
