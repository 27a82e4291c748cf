;; Takes memory until there is no more.
;; fails: trap
;; says: bytes of memory and may have
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (loop $more
        (drop (memory.grow (i32.const 16)))
        (br $more))))
  (global.get $forward))
