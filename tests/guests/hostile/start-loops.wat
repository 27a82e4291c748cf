;; Never comes back from its start.
;; fails: start
;; says: longer than its limit of 500ms
(func $start (type $start)
  (loop $for_ever (br $for_ever))
  (unreachable))
