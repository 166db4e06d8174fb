"""Speed on this machine: training updates and simulation steps per second."""
