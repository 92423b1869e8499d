"""Portfolios: candidates in an order that past tasks determine."""
