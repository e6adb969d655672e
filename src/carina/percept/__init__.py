"""percept: the sequential examination of a lesion, from presence over contour to attributes, after CheXpercept."""
