"""Statistics of counts: tests, corrections, chains, radii. Nothing here has heard of images, models or trees."""
