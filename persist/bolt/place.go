package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// place watches whether the open file is still the one at the journal's path. A file deleted or moved away
// can be written to as before, but no Open finds its content again.
type place struct {
	path string // absolute
	file *os.File
	id   [idSize]byte // the journal's
	// sameFile is os.SameFile, for the open file and the one at the path.
	sameFile func(mine, there fs.FileInfo) bool
	// committing is held during each commit, and while two files are compared.
	committing sync.Mutex

	mu     sync.Mutex
	looked time.Time
	err    error       // the result of the last look
	other  fs.FileInfo // another file at the path by its number, and the same by its content; or nil
	seen   proof       // the newest commit in other when it was first seen
	shown  bool        // other has shown a later commit of this process: it is the open file
}

// placeEvery is how often the path is looked at, at most.
const placeEvery = time.Second

// check compares the open file with the path, at most once in placeEvery unless it is doubtful, and returns the result of the last comparison. An error
// matches persist.ErrGone: the file was moved or replaced. If doubtful is true, the file at the path may be a copy of the open one, and the caller checks
// again after its commit: a copy lacks that commit.
func (p *place) check() (doubtful bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.looked) >= placeEvery || p.doubtful() {
		p.looked, p.err = now, p.look()
	}
	return p.doubtful(), p.err
}

// doubtful reports whether the file at the path may be a copy of the open one. It may if it looks like another file (other) with the same commits, until it
// has shown a commit made since it was first seen (shown): then it is the open file, under another number.
func (p *place) doubtful() bool { return p.other != nil && !p.shown }

// look compares the open file with the file at the path. It returns an error if another file is at the path: then the journal must not write any more, since
// another process would not find its file. If look cannot find something out, this is no error. Another file with the same commits may be the open one, and
// is remembered in p.other.
func (p *place) look() error {
	mine, err := p.file.Stat()
	if err != nil {
		return nil
	}
	// Its name is gone, even if something else has this name now, such as a copy with the same id.
	if links(mine) == 0 {
		return p.gone("it was deleted")
	}
	there, err := os.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.gone("nothing is at its path")
	case err != nil:
		return nil
	case p.sameFile(mine, there):
		p.other = nil
		return nil
	}
	return p.compare(there)
}

// gone returns an error that matches persist.ErrGone: the file is not at its path any more, for this reason. It forgets what was known of a file at the path
// that may be a copy.
func (p *place) gone(reason string) error {
	p.other, p.shown = nil, false
	return fmt.Errorf("%w: %s", persist.ErrGone, reason)
}

// compare compares the open file with another one at the path. Some systems show one file as two, as overlays do. Then both have the same commits, and this is
// no error. A backup has the journal's id, too, but lacks the last commits. A copy made after the last commit lacks the next one: so p.seen notes the newest
// commit, and p.shown is set once both files have a later one.
func (p *place) compare(there fs.FileInfo) error {
	same, newest := p.sameCommit()
	switch {
	case !same:
		return p.gone("another file is at its path; a backup lacks what was recorded since")
	case p.other == nil || !os.SameFile(p.other, there):
		p.other, p.seen, p.shown = there, newest, false
	default:
		p.shown = newest != p.seen
	}
	return nil
}

// sameCommit reports whether the file at the path has this journal's id and the newest commit of the open file. newest is the proof of that commit, its number
// and state. It waits for the commit under way, since a file in the middle of one cannot be compared.
func (p *place) sameCommit() (same bool, newest proof) {
	f, err := os.Open(p.path)
	if err != nil {
		return false, proof{}
	}
	defer f.Close()
	p.committing.Lock()
	defer p.committing.Unlock()
	there, err := readProof(f, p.id)
	if err != nil {
		return false, proof{}
	}
	mine, err := readProof(p.file, p.id)
	return err == nil && there == mine, mine
}

// readProof reads the proof (number and state) of the newest commit in a file. It is an error if the file is no journal, or one with another id.
func readProof(f *os.File, id [idSize]byte) (proof, error) {
	info, err := f.Stat()
	if err != nil {
		return proof{}, err
	}
	if !info.Mode().IsRegular() {
		return proof{}, errors.New("it is not a regular file")
	}
	ms, err := readMetas(f, info.Size())
	if err != nil {
		return proof{}, err
	}
	s, err := newScanner(f, info.Size(), ms.newest)
	if err != nil {
		return proof{}, err
	}
	r, err := s.root()
	if err != nil {
		return proof{}, err
	}
	found, _, _, err := readAbout(r.about)
	if err != nil {
		return proof{}, err
	}
	if found != id || len(r.state) != stateSize {
		return proof{}, fmt.Errorf("%w: it is another journal", persist.ErrCorrupt)
	}
	return proof{ms.newest.txid, [stateSize]byte(r.state)}, nil
}

// isAt reports whether path leads to the open file f. It is false, too, if this cannot be found out.
func isAt(path string, f *os.File) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// restrict takes the permissions of others away from a file, and leaves those of
// its group. A file of another user, or on a file system without
// permissions, stays as it is.
func restrict(f *os.File, info fs.FileInfo) error {
	const others = 0o007
	if runtime.GOOS == "windows" || info.Mode().Perm()&others == 0 {
		return nil
	}
	err := f.Chmod(info.Mode().Perm() &^ others)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
