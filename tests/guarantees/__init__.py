"""The promises of a certificate, checked by simulation: segmenters with known class shares, false labels counted."""
