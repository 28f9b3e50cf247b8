package batch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// batchUsage is one wrong call, and the line that says so. At the end of a line
// "…" stands for what bolt says.
type batchUsage struct {
	name string
	in   string
	args []string // DIR stands for the folder, SERVER for the server
	want string
}

func batchUsageTests() []batchUsage {
	const key = commandtest.OrderKey
	good := "user,order_id\nu1,o1\nu2,o2\n"
	return []batchUsage{
		{"missing file", good, []string{"DIR/none.csv", "--url", "SERVER", "--key", key}, "DIR/none.csv: no such file or directory"},
		{"directory", good, []string{"DIR", "--url", "SERVER", "--key", key}, "DIR: is a directory"},
		{"empty file", "", []string{"DIR/in.csv", "--url", "SERVER", "--key", key}, "DIR/in.csv: is empty"},
		{"binary", "user\x00\x01", []string{"DIR/in.csv", "--url", "SERVER", "--key", key}, "DIR/in.csv: holds a NUL byte in line 1, as no text does"},
		{"broken row late", good + "u3\n", []string{"DIR/in.csv", "--url", "SERVER", "--key", key}, "DIR/in.csv: row 3 (line 4): has another number of fields than the header"},
		{"broken JSON late", "{\"user\":1,\"order_id\":2}\n{\n", []string{"DIR/in.csv", "--url", "SERVER", "--key", key}, "DIR/in.csv: row 2: is not JSON: byte 1: unexpected end of JSON input"},
		{"empty key field", good + ",o3\n", []string{"DIR/in.csv", "--url", "SERVER", "--key", key}, `DIR/in.csv: row 3 (line 4), column "user": is empty, and the key needs it`},
		{"unknown key field", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", "order:{usr}"}, `DIR/in.csv: column "usr": named by --key, is not there (is it "user"?); the columns are "user", "order_id"`},
		{"no number", "user,order_id\nu1,o1\n", []string{"DIR/in.csv", "--url", "SERVER", "--key", "order:{user}", "--number", "order_id"}, `DIR/in.csv: row 1 (line 2), column "order_id": "o1" is not a JSON number`},
		{"one key, other content", good + "u1,o3\n", []string{"DIR/in.csv", "--url", "SERVER", "--key", "order:{user}"}, `DIR/in.csv: row 3 (line 4): has the key "idemp:order:u1" of row 1, and other content`},
		{"key too long", "id\n" + strings.Repeat("x", 300) + "\n", []string{"DIR/in.csv", "--url", "SERVER", "--key", "order:{id}"}, `DIR/in.csv: row 1 (line 2): profile "draft-07": a key of 312 bytes; want 1 to 255; a key that fits: --key-short 52, or --key-uuid`},
		{"no key", good, []string{"DIR/in.csv", "--url", "SERVER"}, `--key is empty; want a scope and fields, such as "order:{user}:{order_id}"`},
		{"key without field", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", "order"}, `--key "order" names no {field}, so that all rows would share one key`},
		{"no URL", good, []string{"DIR/in.csv", "--key", key}, "--url is required"},
		{"URL without a scheme", good, []string{"DIR/in.csv", "--url", "example.com/x", "--key", key}, "--url: the URL must start with http:// or https://"},
		{"URL without a host", good, []string{"DIR/in.csv", "--url", "http:///x", "--key", key}, "--url: the URL names no host"},
		{"URL with a fragment", good, []string{"DIR/in.csv", "--url", "http://h/x#f", "--key", key}, "--url: the URL has a #fragment, which is never sent"},
		{"broken URL", good, []string{"DIR/in.csv", "--url", "http://u:secret@h:x/", "--key", key}, `--url: want a URL such as https://api.example.com/charges: invalid port ":x" after host`},
		{"method", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--method", "post"}, `--method: method "post": methods are case-sensitive; POST is meant?`},
		{"a slip of the method", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--method", "PSOT"}, `--method: "PSOT" is not an HTTP method; POST is meant?`},
		{"safe method", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--method", "GET"}, "DIR/in.csv: row 1 (line 2): GET is never journaled, and takes no key; Do sends it without (1 more row alike)"},
		{"profile", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--profile", "acme"}, `--profile "acme" is not known; see oncehttp profile list, or give a file: ./NAME.json`},
		{"header", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "-H", "secret"}, `--header number 1: want "Name: value"`},
		{"key in a header", "user,order_id\nu1,o1\n", []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "-H", "Idempotency-Key: x"}, `DIR/in.csv: row 1 (line 2): two keys in one request: "x" and "idemp:order:u1:o1"`},
		{"workers", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--workers", "0"}, "--workers must be from 1 to 1024"},
		{"rate", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--rate", "NaN"}, "--rate must be from 0 to 1000000"},
		{"generation", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--generation", "0"}, "--generation must be at least 1"},
		{"delays", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--min-delay", "2s", "--max-delay", "1s"}, "a --max-delay of 1s is below the --min-delay of 2s"},
		{"two files", good, []string{"DIR/in.csv", "x", "--url", "SERVER", "--key", key}, `"x" is too much: want FILE; see oncehttp batch --help`},
		{"unknown flag", good, []string{"DIR/in.csv", "--nope"}, "unknown flag: --nope; see oncehttp batch --help"},
		{"workers in words", good, []string{"DIR/in.csv", "--workers", "many"}, `--workers "many": want a whole number; see oncehttp batch --help`},
		{"rate in words", good, []string{"DIR/in.csv", "--rate", "fast"}, `--rate "fast": want a number; see oncehttp batch --help`},
		{"stdin without a journal", good, []string{"-", "--url", "SERVER", "--key", key}, "stdin has no name to put a journal beside; --journal is required"},
		{"device without a journal", good, []string{os.DevNull, "--url", "SERVER", "--key", key}, os.DevNull + ": is not a regular file to put a journal beside; --journal is required"},
		{"journal in no folder", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--journal", "DIR/no/j.db"}, "journal DIR/no/j.db: its folder is not there"},
		{"journal is a folder", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--journal", "DIR"}, "journal DIR: is a directory"},
		{"journal is something else", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--journal", "DIR/in.csv"}, "journal DIR/in.csv: is not a journal: it begins with…"},
		{"journal of other bytes", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--journal", "DIR/damaged"}, "journal DIR/damaged: is not a journal: it begins with…"},
		{"journal is locked", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--journal", "LOCKED"}, "journal LOCKED: this process has it open already: share one Journal, or one Client, or close the first…"},
		{"out is the input", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--out", "DIR/../" + "BASE" + "/in.csv"}, "--out DIR/../BASE/in.csv is the same file as DIR/in.csv"},
		{"out is the journal", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--out", "DIR/in.csv.oncehttp.db"}, "--out DIR/in.csv.oncehttp.db is the same file as DIR/in.csv.oncehttp.db"},
		{"out in no folder", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--out", "DIR/no/out"}, "--out DIR/no/out: no such file or directory"},
		{"out is a folder", good, []string{"DIR/in.csv", "--url", "SERVER", "--key", key, "--out", "DIR"}, "--out DIR: is a directory"},
	}
}

// Every wrong call or input is one line and status 2, sends nothing, and leaves
// every file as it was.
func TestBatchUsage(t *testing.T) {
	t.Parallel()
	locked := t.TempDir() + "/j.db"
	held, err := bolt.Open(locked, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	for _, tt := range batchUsageTests() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Refusing(t)
			file := commandtest.WriteFile(t, "in.csv", tt.in)
			dir := filepath.Dir(file)
			commandtest.WriteFile(t, dir+"/damaged", strings.Repeat("damaged ", 5000))
			r := strings.NewReplacer("LOCKED", locked, "DIR", dir, "SERVER", s.URL, "BASE", filepath.Base(dir))
			args := []string{"batch"}
			for _, a := range tt.args {
				args = append(args, r.Replace(a))
			}
			before := commandtest.Tree(t, dir)
			got := commandtest.Run(t, args...)
			want := "oncehttp: " + r.Replace(tt.want)
			if start, open := strings.CutSuffix(want, "…"); open && strings.HasPrefix(got.Err, start) {
				want = strings.TrimSuffix(got.Err, "\n")
			}
			if strings.Contains(strings.Join(args, " "), locked) {
				if got.Status != terminal.ExitLocked || !strings.Contains(got.Err, fmt.Sprintf("process %d", os.Getpid())) {
					t.Errorf("exit %d, stderr %q; want the process that holds it", got.Status, got.Err)
				}
				got.Status = terminal.ExitUsage
			}
			got.Usage(t, want)
			if strings.Count(got.Err, "\n") != 1 || strings.Contains(got.Err, "secret") {
				t.Errorf("stderr %q, want one line without secrets", got.Err)
			}
			if after := commandtest.Tree(t, dir); !slices.Equal(before, after) {
				t.Errorf("the folder changed: %q, was %q", after, before)
			}
		})
	}
}
