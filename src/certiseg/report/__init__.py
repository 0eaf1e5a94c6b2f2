"""Reports: a run or a certificate as one HTML file."""
