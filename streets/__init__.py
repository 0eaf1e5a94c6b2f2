"""A generator of street scenes with exact labels in the 31 CamVid classes; `python -m streets` writes them to files.

The plan of a street (`layout`) is drawn from the seed; `scene` paints it from the far end to the near with a pinhole
camera. Every picture size shows the same street. The data set `streets` of certiseg is 24 of these scenes.
"""

from streets.labels import CLASSES
from streets.scene import lane, street

__all__ = ["CLASSES", "lane", "street"]
