"""What models hear: samples become the power of bands of frequencies, as rows of the Graph; and networks that are made by their architecture."""
