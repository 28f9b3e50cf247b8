package migrations

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"ariga.io/atlas/sql/migrate"

	"github.com/oncehttp/oncehttp"
)

// orders is the step of the shop. Its number is later than those of the journal's steps, as a date is.
const orders = "20260101000000_orders.sql"

// sorted returns the names of the files in their order.
func sorted(t *testing.T, files fs.FS) []string {
	t.Helper()
	names, err := fs.Glob(files, "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	slices.Sort(names)
	return names
}

// with returns the files with one more.
func with(t *testing.T, files fs.FS, name, text string) fs.FS {
	t.Helper()
	all := fstest.MapFS{name: {Data: []byte(text)}}
	for _, old := range sorted(t, files) {
		all[old] = &fstest.MapFile{Data: []byte(read(t, files, old))}
	}
	return all
}

// read returns the text of a file.
func read(t *testing.T, files fs.FS, name string) string {
	t.Helper()
	text, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// later returns the name and the text of a step that adds a column and notes its version.
func later(p *place, version, oldest int) (name, text string) {
	return fmt.Sprintf("%05d_later.sql", version), fmt.Sprintf(`-- +goose Up
-- A later version of the journal's schema.
ALTER TABLE %s ADD COLUMN later_%d %s;

INSERT INTO %s (version, oldest) VALUES (%d, %d);
`, p.record, version, p.binary, p.version, version, oldest)
}

// shop makes the tables of the shop, by the tool with its own name for the table of versions. It returns its files.
func shop(t *testing.T, p *place, by tool) fs.FS {
	t.Helper()
	files := fstest.MapFS{orders: {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INT PRIMARY KEY);\n")}}
	ran(t, p, by, files, by.table, orders)
	return files
}

// ran runs the tool and compares what it ran.
func ran(t *testing.T, p *place, by tool, files fs.FS, table string, want ...string) {
	t.Helper()
	if names, err := by.run(t, p, files, table); err != nil || !slices.Equal(names, want) {
		t.Fatalf("the tool ran %q, %v; want %q", names, err, want)
	}
}

// state is the shape of the journal, and when each of its steps was made.
func state(t *testing.T, p *place) string {
	t.Helper()
	return p.shape(t) + "\n" + lines(t, p.db, "SELECT applied FROM "+p.version+" ORDER BY version")
}

// works opens the journal and sends one payment twice, which reaches the API once.
func works(t *testing.T, p *place, key oncehttp.Key) {
	t.Helper()
	j, err := p.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	sent := 0
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: []string{"https://api.example"}, Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: 201, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: req}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/v1/payments", strings.NewReader(`{"amount":1}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.DoKey(req, key)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if sent != 1 {
		t.Errorf("%s was sent %d times, want 1", key, sent)
	}
}

// refused opens the journal, which is ErrSchema with these words.
func refused(t *testing.T, p *place, words string) {
	t.Helper()
	j, err := p.open(t.Context())
	if err == nil {
		_ = j.Close()
	}
	if !errors.Is(err, p.errSchema) || !strings.Contains(err.Error(), words) {
		t.Errorf("Open: %v; want ErrSchema with %q", err, words)
	}
}

// roundTrip is an API.
type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// everywhere runs a test with each tool on each engine.
func everywhere(t *testing.T, test func(t *testing.T, p *place, by tool)) {
	for _, engine := range slices.Sorted(maps.Keys(places)) {
		for _, name := range slices.Sorted(maps.Keys(tools)) {
			t.Run(name+"/"+engine, func(t *testing.T) {
				t.Parallel()
				test(t, places[engine](t), tools[name])
			})
		}
	}
}

// TestSteps: in the database of a shop whose own steps it has run before, the tool makes what Migrate makes, and notes it in a table of its own. Run again
// it changes nothing. Of later steps it runs the new one alone. The journal opens after a step that this program may use, and is ErrSchema
// after one that it may not. (atlas leaves out each line of a file with the words Down, StatementBegin or StatementEnd: a step with such a line fails here.)
func TestSteps(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, p *place, by tool) {
		const table = "steps_of_oncehttp"
		shop(t, p, by)
		before := lines(t, p.db, "SELECT COUNT(*) FROM "+by.table)
		names := sorted(t, p.steps)
		number, _, _ := strings.Cut(names[len(names)-1], "_")
		known, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}

		ran(t, p, by, p.steps, table, names...)
		if got, want := p.shape(t), p.byMigrate(t); got != want {
			t.Fatalf("the tool makes\n%s\nMigrate makes\n%s", got, want)
		}
		works(t, p, "first")
		made := state(t, p)
		if err := p.migrate(t.Context()); err != nil || state(t, p) != made {
			t.Errorf("Migrate behind the tool: %v, and there is\n%s\nbefore it was\n%s", err, state(t, p), made)
		}
		ran(t, p, by, p.steps, table)
		if again := state(t, p); again != made {
			t.Errorf("the tool has made\n%s\nof\n%s", again, made)
		}

		name, text := later(p, known+1, known)
		files := with(t, p.steps, name, text)
		ran(t, p, by, files, table, name)
		works(t, p, "second")
		made = state(t, p)
		if err := p.migrate(t.Context()); err != nil || state(t, p) != made {
			t.Errorf("Migrate of an older program: %v, and there is\n%s\nbefore it was\n%s", err, state(t, p), made)
		}
		name, text = later(p, known+2, known+1)
		ran(t, p, by, with(t, files, name, text), table, name)
		refused(t, p, fmt.Sprintf("know version %d or later", known+1))
		if after := lines(t, p.db, "SELECT COUNT(*) FROM "+by.table); after != before {
			t.Errorf("the shop's table of versions has %s rows, before %s", after, before)
		}
	})
}

// TestSharedTable: in one table with the shop's later versions goose refuses the journal's steps, and atlas runs none and says nothing. Under a
// later number among the shop's files both run them.
func TestSharedTable(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, p *place, by tool) {
		files := shop(t, p, by)
		names, err := by.run(t, p, p.steps, by.table)
		if len(names) > 0 || (by.shared == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), by.shared) {
			t.Errorf("in one table: the tool ran %q, %v; want none and %q", names, err, by.shared)
		}
		refused(t, p, "it has not been made")
		var numbered []string
		for _, name := range sorted(t, p.steps) {
			numbered = append(numbered, "202601020"+name)
			files = with(t, files, "202601020"+name, read(t, p.steps, name))
		}
		ran(t, p, by, files, by.table, numbered...)
		works(t, p, "shared")
	})
}

// TestAtlasRefuses: atlas runs no file without the hash of the folder, and none in a database with other tables unless it is told to. Both are
// in the command of docs/journals.md.
func TestAtlasRefuses(t *testing.T) {
	t.Parallel()
	for _, engine := range slices.Sorted(maps.Keys(places)) {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			p := places[engine](t)
			run(t, p.db, "CREATE TABLE orders (id INT PRIMARY KEY)")
			if _, _, err := atlas(t, p, unhashed(t, p.steps), "revisions", migrate.WithAllowDirty(true)); !errors.Is(err, migrate.ErrChecksumNotFound) {
				t.Errorf("without a hash: %v, want ErrChecksumNotFound", err)
			}
			var dirty *migrate.NotCleanError
			if _, _, err := atlas(t, p, hashed(t, p.steps), "revisions"); !errors.As(err, &dirty) {
				t.Errorf("beside other tables: %v, want a NotCleanError", err)
			}
		})
	}
}
