"""Colours, label maps, legends, pictures and the drawn tree: for every picture, figure and page alike."""
