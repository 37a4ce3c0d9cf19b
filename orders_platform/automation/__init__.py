"""What runs when. Belongs here: jobs, schedules and sensors. Not here: what an asset computes or a check compares."""
