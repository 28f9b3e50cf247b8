package bolt_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// Every bit is
//
//	go test ./persist/bolt -run TestFlippedBit -v -args -everybit
var everyBit = flag.Bool("everybit", false, "TestFlippedBit flips every bit of its file")

// TestFlippedBit flips bits of a journal's file, one at a time, in a process of its own: in bbolt a damaged page may
// end the process. The file is refused and left as it is, also its lock, or gives each record, or says that one is
// damaged.
func TestFlippedBit(t *testing.T) {
	t.Parallel()
	for name, file := range flippedFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(testrun.Dir(t), "journal.db")
			writeFile(t, path, file)
			flips, died := 0, 0
			for next := 0; next < 8*len(file); next++ {
				from := next
				n, said := flipFrom(t, path, &next)
				flips += n
				if said != "" {
					died++
					t.Errorf("bit %d of byte %d ends the process: %s", next%8, next/8, said)
				}
				if died > 20 || n == 0 && next == from && said == "" {
					break
				}
			}
			t.Logf("%d bits of %d bytes", flips, len(file))
			if flips < testrun.N(18, 1000) {
				t.Errorf("only %d bits were flipped", flips)
			}
		})
	}
}

// flippedFiles are small journals as they were closed: one with large bodies, and one of a branch page with its leaves,
// and as it is after a power failure, without the mark.
func flippedFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	path := newPath(t)
	closeIt(t, open(t, path))
	files["empty"] = readFile(t, path)
	j := open(t, path)
	for i := range 20 {
		r := begin(t, j, record(fmt.Sprintf("order-%d", i)))
		if i%2 == 0 {
			finish(t, j, r)
		}
	}
	begin(t, j, sized("large", 20_000))
	closeIt(t, j)
	file := readFile(t, path)
	files["records"] = file[:bolt.UsedBytes(file)]
	unmarked := slices.Clone(files["records"])
	clear(unmarked[(1-bolt.NewestMeta(unmarked))*pageSize+sectorSize:][:sectorSize])
	files["unmarked"] = unmarked
	return files
}

// flipFrom lets a process flip the bits from next on. It returns how many that has flipped, and, if one of them has ended
// it, its last words; next is that bit then, and else the end.
func flipFrom(t *testing.T, path string, next *int) (flips int, said string) {
	t.Helper()
	cmd, out, in := spawn(t, "flip", path)
	var last strings.Builder
	if _, err := fmt.Fprintln(in, *next, *everyBit); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			break
		}
		var at int
		if n, _ := fmt.Sscanf(line, "flip %d", &at); n == 1 {
			flips, *next = flips+1, at
			continue
		}
		last.WriteString(line)
		t.Error(strings.TrimSpace(line))
	}
	if err := cmd.Wait(); err != nil {
		return flips, strings.TrimSpace(err.Error() + " " + last.String())
	}
	*next = math.MaxInt32
	return flips, ""
}

// flip flips the bits of a file from one on, and opens each. It says which bit comes next, and what is wrong.
func flip(path string) error {
	debug.SetTraceback("none")
	var from int
	var all bool
	if _, err := fmt.Fscan(os.Stdin, &from, &all); err != nil {
		return err
	}
	base, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	work := path + ".work"
	if err := os.WriteFile(work, base, 0o600); err != nil {
		return err
	}
	want, err := held(work)
	if err != nil {
		return err
	}
	older, err := heldBefore(work, base)
	if err != nil {
		return err
	}
	said := bufio.NewWriter(os.Stdout)
	for bit := from; bit < 8*len(base); bit++ {
		if !all && !telling(base, bit) {
			continue
		}
		fmt.Fprintln(said, "flip", bit)
		if err := said.Flush(); err != nil {
			return err
		}
		file := slices.Clone(base)
		file[bit/8] ^= 1 << (bit % 8)
		refused, err := damaged(work, file, want)
		if err != nil && older != nil {
			refused, err = damaged(work, file, older)
		}
		if err != nil {
			fmt.Fprintf(said, "bit %d of byte %d: %v\n", bit%8, bit/8, err)
		}
		// The lock of a file that was refused is free: mended, it opens at once.
		if !refused && bit%64 != 0 {
			continue
		}
		if err := os.WriteFile(work, base, 0o600); err != nil {
			return err
		}
		j, err := tryOpen(work, bolt.Options{LockWait: -1})
		if err != nil {
			fmt.Fprintf(said, "bit %d of byte %d, mended: %v\n", bit%8, bit/8, err)
			return io.ErrUnexpectedEOF // what is locked stays so
		}
		if err := j.Close(); err != nil {
			return err
		}
	}
	return said.Flush()
}

// held is what a journal holds.
func held(path string) ([]string, error) {
	j, err := tryOpen(path, bolt.Options{})
	if err != nil {
		return nil, err
	}
	lines, err := contents(j)
	return lines, errors.Join(err, j.Close())
}

// heldBefore is what a journal held before its newest commit, if that has no mark: damaged, it is taken for one that was
// cut off.
func heldBefore(path string, file []byte) ([]string, error) {
	if bolt.Marked(file) {
		return nil, nil
	}
	cut := slices.Clone(file)
	clear(cut[bolt.NewestMeta(file)*pageSize:][:pageSize])
	if err := os.WriteFile(path, cut, 0o600); err != nil {
		return nil, err
	}
	return held(path)
}

// telling reports whether a bit is one that the short run flips: all of the heads of
// pages and of what the root page holds, and one of each 251 others; one of each 59 of these, where not all is tested.
func telling(file []byte, bit int) bool {
	at := bit / 8 % pageSize
	page := file[bit/8/pageSize*pageSize:][:pageSize]
	root := len(page) > 0 && strings.Contains(string(page), "oncehttp")
	return bit%testrun.N(59, 1) == 0 && (at < 48 || root && at < 480 || bit%251 == 0)
}
