;; Takes memory for a table until there is no more.
;; fails: trap
;; says: bytes of memory and may have
(table $t 1 funcref)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (loop $more
        (drop (table.grow $t (ref.null func) (i32.const 100000)))
        (br $more))))
  (global.get $forward))
