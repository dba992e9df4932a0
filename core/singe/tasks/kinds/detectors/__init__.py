"""How detectors say boxes, and the points and masks of these: families of heads, by the form of their outputs."""
