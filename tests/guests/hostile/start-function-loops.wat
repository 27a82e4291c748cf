;; Never comes back from the start function of its module.
;; fails: start
;; says: longer than its limit of 500ms
(func $init (loop $for_ever (br $for_ever)))
(start $init)
