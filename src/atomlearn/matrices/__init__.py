"""Problems over matrices: norms, designs, and the solver over factors.

They serve matrix pursuit, sparse principal components, sparse plus low rank, and several targets.
"""
