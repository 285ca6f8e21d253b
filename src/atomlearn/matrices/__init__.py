"""Problems over matrices: norms, designs, the solver over factors, and what papers make of them.

Matrix pursuit, sparse principal components, sparse plus low rank, several targets at once.
"""
