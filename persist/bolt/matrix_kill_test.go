package bolt_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist/bolt"
)

// killed is how a step is come to, and what must be there after the process was
// killed at it.
type killed struct {
	prepare func(t *testing.T, path string) // the file before
	want    []string                        // keys that must be there
	may     []string                        // keys that may
}

// killedAt says it for each step.
func killedAt(step string) killed {
	switch topic, _, _ := strings.Cut(step, ":"); {
	case topic == "create":
		return killed{prepare: func(*testing.T, string) {}}
	case step == bolt.StepOpenForgotten || step == bolt.StepOpenForgetSynced:
		return killed{prepare: prepareCut, want: []string{"before"}}
	case topic == "open":
		return killed{prepare: prepareUnmarked, want: []string{"before", "unmarked"}}
	case topic == "close":
		return killed{prepare: prepareClosed, want: []string{"before", "unmarked", "first", "second"}}
	case strings.Contains(step, "number"): // of the first commit only
		return killed{prepare: prepareClosed, want: []string{"before", "unmarked"}, may: []string{"first"}}
	default:
		return killed{prepare: prepareClosed, want: []string{"before", "unmarked", "first"}, may: []string{"second"}}
	}
}

func prepareClosed(t *testing.T, path string) {
	j := open(t, path)
	begin(t, j, record("before"))
	begin(t, j, record("unmarked"))
	closeIt(t, j)
}

// prepareUnmarked leaves a journal whose newest commit is whole, and not marked.
func prepareUnmarked(t *testing.T, path string) {
	prepareClosed(t, path)
	file := readFile(t, path)
	older := 1 - bolt.NewestMeta(file)
	clear(file[older*pageSize+sectorSize:][:sectorSize])
	writeFile(t, path, file)
}

// prepareCut leaves a journal whose newest commit was cut off.
func prepareCut(t *testing.T, path string) {
	prepareUnmarked(t, path)
	file := readFile(t, path)
	pages := bolt.NewPages(file)
	clear(file[int(pages[len(pages)-1])*pageSize:][:pageSize])
	writeFile(t, path, file)
}

// TestMatrixKill kills a process at every named step of a creation, an open, a
// commit and a close, with one sync a commit and with bbolt's two. What it had
// acknowledged must be there, and the work goes on.
func TestMatrixKill(t *testing.T) {
	t.Parallel()
	for _, step := range bolt.Steps() {
		for _, version := range []string{bolt.Reviewed, "another"} {
			t.Run(step+"/bbolt "+version, func(t *testing.T) { testKill(t, step, version) })
		}
	}
}

func testKill(t *testing.T, step, version string) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal.db")
	k := killedAt(step)
	k.prepare(t, path)
	cmd, out, in := spawn(t, "kill", path)
	if _, err := fmt.Fprintf(in, "%s\n%s\n", step, version); err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(out)
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("it was not killed at this step: %v, it said %q", err, said)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 2 {
		t.Errorf("it left %v, %v", files, err)
	}
	for range 2 {
		j := open(t, path)
		var got []string
		for _, l := range mustContents(t, j) {
			got = append(got, strings.TrimPrefix(strings.Fields(l)[1], "acct/"))
		}
		for i, key := range got {
			if i < len(k.want) && key != k.want[i] || i >= len(k.want) && !slices.Contains(k.may, key) {
				t.Errorf("it holds %q, want %q and perhaps %q", got, k.want, k.may)
			}
		}
		if len(got) < len(k.want) {
			t.Errorf("it holds %q, want %q", got, k.want)
		}
		k.want, k.may = append(got, "afterwards"), nil
		if !slices.Contains(got, "afterwards") {
			begin(t, j, record("afterwards"))
		} else {
			k.want = got
		}
		closeIt(t, j)
	}
}

// killAtStep opens the journal, begins two records and closes it, and is killed at
// the step that the first line of its input names. At the steps of a commit that is
// the second commit where it can be.
func killAtStep(path string) error {
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	step := in.Text()
	in.Scan()
	opts := bolt.WithBboltVersion(bolt.Options{}, in.Text())
	armed := !strings.HasPrefix(step, "commit") || strings.Contains(step, "number")
	j, err := bolt.Open(path, bolt.WithStep(opts, func(name string) {
		if name == step && armed {
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = p.Kill()
			}
			if err != nil {
				panic(err)
			}
			select {}
		}
	}))
	if err != nil {
		return err
	}
	for _, key := range []string{"first", "second"} {
		if _, _, err := j.Begin(context.Background(), record(key)); err != nil {
			return err
		}
		fmt.Println(key)
		armed = true
	}
	return j.Close()
}
