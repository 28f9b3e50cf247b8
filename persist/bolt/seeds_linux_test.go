package bolt_test

// seed is a fault: a text that stands once in a file of the package is replaced by another in a copy that the compiler
// reads instead. Who changes the text adapts it here.
type seed struct {
	name, file string
	old, new   string
	trace      string // one that finds it
	gate       bool   // at once: it is built in the gate, too
}

// seeds are the faults that the matrix must find. In the gate the texts of most are only looked for. That the digest leaves
// out what a file says about itself is none of them: no commit changes that, so that a torn one cannot mix two of it, and a
// program compares the format with its own. Junk over it is for TestAboutIsInTheDigest.
func seeds() []seed {
	return []seed{
		// Names.
		{"the directory is not synced", "names.go", "err := syncDir(dir); {", "err := error(nil); {", "creation where a link leads", true},
		{"the directory is not synced to which a link leads", "names.go", "range followLinks(path) {", "range followLinks(path)[:1] {", "", false},
		{"the directory of a link is not synced", "names.go", "range followLinks(path) {", "range followLinks(path)[len(followLinks(path))-1:] {", "", false},
		{"a file has its name before it is synced", "create.go", "err := f.Sync(); err != nil", "err := error(nil); err != nil", "", false},

		// Commits.
		{"a commit is acknowledged before its sync", "commit.go", "if err := j.sync(); err != nil {\n			return j.uncertain(err)\n		}", "go func() { _ = j.sync() }()", "a few records", true},
		{"a commit for which nobody waits is not synced", "commit.go", "if syncs == 1 || j.ownSync {", "if syncs == 1 && b.waiters > 0 || j.ownSync {", "", false},
		{"freed pages are used again too early: two transactions for each sync", "commit.go",
			"	if err := j.commit(tx, s.txid); err != nil {\n		return err\n	}\n", "	if err := j.commit(tx, s.txid); err != nil {\n		return err\n	}\n" + again, "", false},
		{"the first commit after Open has one sync", "commit.go", "if j.twoSyncs || !j.steady {", "if j.twoSyncs {", "a commit after one whose meta page is missing", false},
		{"the first commit after a failure has one sync", "commit.go", "j.steady = err == nil", "j.steady = j.steady || err == nil", "a commit after three whose meta pages were not written: 2", false},
		{"a mark is written before its commit is synced", "commit.go", "began = time.Now()\n		if", "began = time.Now()\n		_ = j.mark(s.txid)\n		if", "", false},
		{"a mark is not synced at Close", "journal.go", "err = j.wrap(j.syncMark())", "err = nil", "", false},
		{"Forget is acknowledged before its commit", "change.go", "	return j.unlockAndAwait(j.collecting)\n}\n\n// removeSlot", "	j.mu.Unlock()\n	return nil\n}\n\n// removeSlot", "", false},
		{"Sweep frees before its commit is durable", "sweep.go", "	if err := j.unlockAndAwait(j.collecting); err != nil {\n		return 0, err\n	}\n	return n, nil", "	j.mu.Unlock()\n	return n, nil", "", false},
		{"Begin of what stands there does not wait for its commit", "change.go", "if b := j.unsettled(seq); b != nil {", "if b := j.unsettled(seq); b != nil && false {", "", false},

		// Errors.
		{"EIO of a sync is taken for not written", "commit.go", "			return j.uncertain(err)\n		}\n	}\n	j.syncTook", "			if errors.Is(err, syscall.EIO) {\n				return j.unwritten(err)\n			}\n			return j.uncertain(err)\n		}\n	}\n	j.syncTook", "", false},
		{"ENOSPC of a sync is taken for not written", "commit.go", "			return j.uncertain(err)\n		}\n	}\n	j.syncTook", "			if errors.Is(err, syscall.ENOSPC) {\n				return j.unwritten(err)\n			}\n			return j.uncertain(err)\n		}\n	}\n	j.syncTook", "", false},
		{"a meta page that was come to is taken for not written", "commit.go", "if j.reached(txid) || failedToSync(err) {", "if false {", "", false},
		{"the first of bbolt's two syncs fails, and is taken for not written", "commit.go", "if j.reached(txid) || failedToSync(err) {", "if j.reached(txid) {", "two syncs, error=EIO of the first", false},
		{"a larger size stays whose sync has failed", "commit.go", "_ = j.file.Truncate(before)", "_ = before", "", false},
		{"a commit that failed stays in memory", "groupcommit.go", "	default:\n		j.undo(b)\n", "	default:\n", "", false},

		// What a file shows.
		{"the digest of the records is not compared", "load.go", "j.slots.digest != st.digest || ", "", "", false},
		{"the digest of the bodies is not compared", "load.go", " || bodies != st.bodies {", " || bodies != st.bodies && false {", "", false},
		{"the digest does not cover changes of records", "slots.go", "if s.flags&slotChanged != 0 {\n		sum +=", "if false {\n		sum +=", "updates in a page of their own", false},
		{"the state of another commit counts", "load.go", "if !ok || st.txid != m.txid {", "if !ok {", "", false},
		{"the checksum of a meta page is not checked", "metapage.go", " || n.Uint64(b[56:]) != sum.Sum64() {", " {", "", false},
		{"the checksum of a mark is not checked", "metapage.go", " || binary.BigEndian.Uint64(b[16:]) != mix(markMagic^mix(txid)) {", " {", "", false},

		// Recovery.
		{"recovery trusts what the kernel shows of pages", "recover.go", "for _, p := range parts {", "for _, p := range parts[:0] {", "", false},
		{"recovery writes pages before their copy is synced", "recover.go", "	if err := j.sync(); err != nil {\n		return err\n	}\n	for _, p := range parts", "	for _, p := range parts", "", false},
		{"recovery writes both meta pages before one sync", "recover.go", "	if err := j.sync(); err != nil {\n		return err\n	}\n	if err := j.markDurably(ms.newest.txid)", "	if err := j.markDurably(ms.newest.txid)", "recovery of a whole commit", true},
		{"recovery marks a commit over a meta page whose wipe is not synced", "recover.go", "	if err := j.sync(); err != nil {\n		return err\n	}\n	return j.markDurably(txid)", "	return j.markDurably(txid)", "recovery whose wipe fails, then error=ENOSPC of pwrite64 2", false},
		{"recovery writes its copy over the one before", "copy.go", "at := aligned(size)", "at := aligned(int64(h.size))", "", false},
		{"recovery reads no copy", "recover.go", "	if c != nil {\n		f = c", "	if c != nil && false {\n		f = c", "", false},
		{"recovery reads a copy that is not whole", "copy.go", "if !bytes.Equal(sum.Sum(nil), h.sum[:]) {", "if false {", "", false},
		{"recovery removes its copy before the pages are synced", "recover.go", "	if err := j.sync(); err != nil {\n		return err\n	}\n	if err := j.markDurably(ms.newest.txid)", "	_ = j.file.Truncate(end)\n	if err := j.sync(); err != nil {\n		return err\n	}\n	if err := j.markDurably(ms.newest.txid)", "", false},
	}
}

// again commits the state once more, in a transaction of its own.
const again = `	if tx, err = j.db.Begin(true); err != nil {
		return j.uncertain(err)
	}
	s.txid = uint64(tx.ID())
	if err := tx.Cursor().Bucket().Put(j.names.state, s.append(j.scratch[8:8], j.about)); err != nil {
		return j.uncertain(err)
	}
	if err := j.commit(tx, s.txid); err != nil {
		return j.uncertain(err)
	}
`
