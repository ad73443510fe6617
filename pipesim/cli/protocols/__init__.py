"""Protocols: written, drawn, simulated, fitted, verified and compared with traces."""
