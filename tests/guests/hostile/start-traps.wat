;; Traps as it starts.
;; fails: start
;; says: unreachable
(func $start (type $start)
  (unreachable))
