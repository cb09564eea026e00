"""From episode records to numbers: columns, references, intervals, scores, comparisons, ratings."""
