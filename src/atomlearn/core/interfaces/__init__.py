"""The five interfaces of the package: read these first.

A *loss* measures predictions. A *design* holds the data X and computes *scores* X'v. A *norm*
selects columns by their scores. A *master* re-fits the weights of the selected columns. A *solver*
combines these parts, one step at a time.
"""

from atomlearn._support import (
    EPS,
    TINY,
    Array,
    Columns,
    Deadline,
    Mask,
    OwnParameters,
    Rows,
    TimeIsUp,
    check_share,
    instead,
    is_number,
    is_whole,
    own_parameters,
    positive,
    refuse_unknown,
    whole_number,
)
from atomlearn.core.interfaces.design import Block, Design, Traits
from atomlearn.core.interfaces.lift import Expansion
from atomlearn.core.interfaces.loss import Loss, Task
from atomlearn.core.interfaces.norm import Form, GroupWeights, Lift, Norm, Term
from atomlearn.core.interfaces.proximal import ProxJacobian, ProxPoint
from atomlearn.core.interfaces.scores import Scores
from atomlearn.core.interfaces.warm_start import Arrays, Atom, WarmStart
