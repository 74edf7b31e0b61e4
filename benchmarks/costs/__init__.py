"""What a task costs in each part of the engine: microseconds of CPU and bytes."""
