"""The five interfaces of the package: read these first.

A *loss* measures predictions. A *design* holds the data X and computes *scores* X'v. A *norm*
selects columns by their scores. A *master* re-fits the weights of the selected columns. A *solver*
combines these parts, one step at a time.
"""

from atomlearn.core.interfaces.arrays import EPS, TINY, Array, Columns, Mask, Rows
from atomlearn.core.interfaces.deadline import Deadline, TimeIsUp
from atomlearn.core.interfaces.design import Block, Design, Traits
from atomlearn.core.interfaces.lift import Expansion
from atomlearn.core.interfaces.loss import Loss, Task
from atomlearn.core.interfaces.norm import Form, GroupWeights, Lift, Norm, Term
from atomlearn.core.interfaces.numbers import (
    check_share,
    is_number,
    is_whole,
    positive,
    whole_number,
)
from atomlearn.core.interfaces.other_names import (
    OwnParameters,
    instead,
    own_parameters,
    refuse_unknown,
)
from atomlearn.core.interfaces.proximal import ProxJacobian, ProxPoint
from atomlearn.core.interfaces.scores import Scores
from atomlearn.core.interfaces.warm_start import Arrays, Atom, WarmStart
