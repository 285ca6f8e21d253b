"""Liu, Yuan, Zhang, Liu, Metaxas 2016: k-FCFW."""
