"""AgentMemory and AsyncAgentMemory: the operations, the turn, background work, branches, checkpoints, erasure."""
