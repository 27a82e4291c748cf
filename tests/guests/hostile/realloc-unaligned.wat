;; Has the host write the batch where no list of numbers can be.
;; world: transform-batch
;; fails: every trap
;; says: aligned
(func $realloc (type $realloc) (i32.const 4097))
