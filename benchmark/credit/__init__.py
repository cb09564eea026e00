"""How good credit is: methods of credit assignment measured against the advantage that is true."""
