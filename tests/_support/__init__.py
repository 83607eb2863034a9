"""What tests and benchmarks share: servers, scripted models, recorded runs. Not in the wheel."""
