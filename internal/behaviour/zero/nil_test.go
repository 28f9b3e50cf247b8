package zero_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/redis"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// nilJournals are a nil of each journal, in the interface, and no journal at all.
func nilJournals() []persist.Journal {
	return []persist.Journal{
		nil, (*bolt.Journal)(nil), (*memory.Journal)(nil), (*mysql.Journal)(nil), (*postgres.Journal)(nil), (*redis.Journal)(nil),
	}
}

// TestNilJournalIsRefused: whatever takes a journal refuses a nil one before it calls it.
func TestNilJournalIsRefused(t *testing.T) {
	sealer, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: make([]byte, 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range nilJournals() {
		if c, err := oncehttp.New(oncehttp.Config{Journal: j}); !errors.Is(err, oncehttp.ErrConfig) || c != nil {
			t.Errorf("New with a nil %T: %v, %v; want ErrConfig", j, c, err)
		}
		if sealed, err := sealer.Journal(t.Context(), j); !errors.Is(err, persist.ErrInvalid) || sealed != nil {
			t.Errorf("Sealer.Journal(a nil %T): %v, %v; want ErrInvalid", j, sealed, err)
		}
	}
}

// TestZeroJournalUnderClient: a client on a journal that nobody opened gets errors, and knows nothing of its operations.
func TestZeroJournalUnderClient(t *testing.T) {
	for _, j := range []persist.Journal{new(bolt.Journal), new(memory.Journal), new(mysql.Journal), new(postgres.Journal), new(redis.Journal)} {
		c, err := oncehttp.New(oncehttp.Config{Journal: j})
		if errors.Is(err, oncehttp.ErrConfig) {
			continue
		}
		if err != nil {
			t.Fatalf("%T: %v", j, err)
		}
		args := valid(reflect.TypeOf((*oncehttp.Client).DoKey))
		end := call(reflect.ValueOf(c).MethodByName("DoKey"), args[1:])
		if end.hung || end.panicked != nil || end.results[1].IsNil() {
			t.Fatalf("DoKey on a zero %T: %+v; want an error", j, end)
		}
		if err := end.results[1].Interface().(error); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, persist.ErrClosed) {
			t.Errorf("DoKey on a zero %T: %v; want ErrOutcomeUnknown, and ErrClosed behind it", j, err)
		}
		if err := c.Run(t.Context()); !errors.Is(err, persist.ErrClosed) {
			t.Errorf("Run on a zero %T: %v; want ErrClosed", j, err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("Close of the client on a zero %T: %v", j, err)
		}
	}
}

// TestNilContext: each method of a Client refuses it. A journal may panic, and goes on.
func TestNilContext(t *testing.T) {
	file, err := bolt.Open(filepath.Join(testrun.Dir(t), "j.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range []persist.Journal{memory.New(), file} {
		c, err := oncehttp.New(oncehttp.Config{Journal: j})
		if err != nil {
			t.Fatal(err)
		}
		client, journal := reflect.ValueOf(c), reflect.ValueOf(j)
		for i := range client.NumMethod() {
			if m := client.Method(i); takesContext(m.Type()) {
				end := call(m, nothing(m.Type(), nil))
				if err, _ := end.results[len(end.results)-1].Interface().(error); end.panicked != nil || end.hung || !errors.Is(err, oncehttp.ErrConfig) {
					t.Errorf("Client.%s with a nil context: %+v; want ErrConfig", client.Type().Method(i).Name, end)
				}
			}
		}
		for i := range journal.NumMethod() {
			if m := journal.Method(i); takesContext(m.Type()) {
				if end := call(m, nothing(m.Type(), nil)); end.hung {
					t.Fatalf("%T.%s does not return", j, journal.Type().Method(i).Name)
				}
				if end := call(journal.MethodByName("Flush"), nothing(reflect.TypeOf(j.Flush), context.Background())); end.hung || !end.results[0].IsNil() {
					t.Fatalf("Flush after %T.%s with a nil context: %+v", j, journal.Type().Method(i).Name, end)
				}
			}
		}
		if err := errors.Join(c.Close(), j.Close()); err != nil {
			t.Error(err)
		}
	}
}
