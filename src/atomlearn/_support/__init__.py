"""Checks of numbers and parameter names; arrays, data frames, files and deadlines.

Nothing here knows of losses, norms, designs or problems. All packages import from here;
``__init__.pyi`` tells type checkers where the names are. A name is imported on first use.
"""

from atomlearn._lazy import lazy

__getattr__ = lazy(
    __name__,
    {
        "arrays": (
            "Array Columns EPS Mask Rows TINY counted growth numbered power_of_two ranges "
            "spread_rows"
        ),
        "deadline": "Deadline TimeIsUp Work",
        "frames": (
            "as_frame as_table frame_to_array holds_numbers narrowest number_types table_names"
        ),
        "last_answer": "LastAnswer",
        "libraries": "is_anndata is_dask is_table library_of",
        "numbers": (
            "all_text check_offset check_share check_weight finite is_number is_whole mean_weight "
            "normalized positive unmasked whole_number"
        ),
        "other_names": (
            "OwnMethods OwnParameters PARAMETERS SAME instead own_parameters refuse_unknown"
        ),
        "vectors": "l2_norm to_float64 without",
        "whole_files": (
            "check_place clear_left sync_folder whole_file write_text write_together write_whole"
        ),
    },
)
