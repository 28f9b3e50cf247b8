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

	mu     sync.Mutex
	looked time.Time
	err    error // the result of the last look
}

// placeEvery is how often the path is looked at, at most.
const placeEvery = time.Second

// check looks at the path, at most once in placeEvery, and returns the result of the last look. Its error
// matches persist.ErrGone.
func (p *place) check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.looked) >= placeEvery {
		p.looked, p.err = now, p.look()
	}
	return p.err
}

// look compares the open file with the one at the path. If it cannot find something out, this is no error:
// the file may be as good as ever.
func (p *place) look() error {
	mine, err := p.file.Stat()
	if err != nil {
		return nil
	}
	// Its name is gone, even if something else has this name now, such as a copy with the same id.
	if links(mine) == 0 {
		return fmt.Errorf("%w: it was deleted", persist.ErrGone)
	}
	there, err := os.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: nothing is at its path", persist.ErrGone)
	case err != nil || os.SameFile(mine, there):
		return nil
	case p.sameJournal():
		return nil // one file shown by the system as two, as overlays do
	}
	return fmt.Errorf("%w: another file is at its path", persist.ErrGone)
}

// sameJournal reports whether the file at the path has this journal's id.
func (p *place) sameJournal() bool {
	f, err := os.Open(p.path)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	ms, err := readMetas(f, info.Size())
	if err != nil {
		return false
	}
	s, err := newScanner(f, info.Size(), ms.newest)
	if err != nil {
		return false
	}
	r, err := s.root()
	if err != nil {
		return false
	}
	id, _, _, err := readAbout(r.about)
	return err == nil && id == p.id
}

// isAt reports whether path leads to f. It is false, too, if this cannot be found out.
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
