;; Comes with a table that takes more than it may have.
;; fails: start
;; says: bytes of memory and may have
(table 10000000 funcref)
