;; Has the host write its configuration outside its memory.
;; fails: start
;; says: beyond end of memory
(func $realloc (type $realloc) (i32.const -8))
