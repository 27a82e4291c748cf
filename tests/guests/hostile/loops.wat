;; Never comes back.
;; fails: timeout
;; says: longer than its limit of 500ms
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (loop $for_ever (br $for_ever))))
  (global.get $forward))
