;; Traps as it starts, with batches.
;; world: transform-batch
;; fails: start
;; says: unreachable
(func $start (type $start)
  (unreachable))
(func $handle (type $handle) (unreachable))
