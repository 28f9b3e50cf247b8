package redis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist/redis"
)

// slot is the hash slot of a key, as the cluster specification says: CRC-16 (XMODEM) of what is
// between the first brace and the next, modulo 16384.
func slot(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return crc % 16384
}

// TestSlots: the keys of a script lie in one slot, and the buckets of a journal in many.
func TestSlots(t *testing.T) {
	t.Parallel()
	if got := slot("123456789"); got != 0x31c3 { // the specification's own example
		t.Fatalf("slot of 123456789 is %x, want 31c3", got)
	}
	slots, seen := map[uint16]bool{}, map[string]bool{}
	for number := range 256 {
		keys := redis.BucketKeys("a.prefix:x", number)
		for _, key := range keys {
			if slot(key) != slot(keys[0]) {
				t.Errorf("%s and %s are in two slots", key, keys[0])
			}
			if seen[key] {
				t.Errorf("%s is used twice", key)
			}
			seen[key] = true
		}
		slots[slot(keys[0])] = true
	}
	if len(slots) < 200 {
		t.Errorf("256 buckets are in %d slots", len(slots))
	}
}

// TestLayout: a journal keeps the number of buckets that it was made with, and is not used by
// code that does not know its format.
func TestLayout(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	opts := own(t, at)
	opts.Buckets = 3
	open(t, at, opts)
	opts.Buckets = 0
	open(t, at, opts)
	opts.Buckets = 4
	if _, err := redis.Open(t.Context(), at, opts); !errors.Is(err, redis.ErrLayout) || !strings.Contains(err.Error(), "3 buckets") {
		t.Errorf("Open with another number of buckets: %v", err)
	}
}

// TestOtherFormats: a journal that another version made is refused with one line, which names its key and says what to do, and
// nothing of it is changed.
func TestOtherFormats(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	for format, advice := range map[string]string{"1": "another prefix", "v1": "another prefix", "v2": "another prefix", "v3": "another prefix", "v4": "another prefix", "2": "newer program", "v6": "newer program"} {
		opts := own(t, at)
		key, client := "{"+opts.Prefix+"}:journal", connect(t, at)
		if err := client.HSet(t.Context(), key, "format", format).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := redis.Open(t.Context(), at, opts)
		if text := fmt.Sprint(err); !errors.Is(err, redis.ErrLayout) || !strings.Contains(text, key) || !strings.Contains(text, advice) || strings.Contains(text, "\n") {
			t.Errorf("format %q: %v; want ErrLayout in one line that names %s and %q", format, err, key, advice)
		}
		if left, err := client.HGetAll(t.Context(), key).Result(); err != nil || len(left) != 1 || left["format"] != format {
			t.Errorf("format %q: %v is left, %v; want it as it was", format, left, err)
		}
	}
}

// TestOptions: what cannot be used is refused before anything is asked, and the error names the option and no password.
func TestOptions(t *testing.T) {
	t.Parallel()
	const url = "redis://:hunter2@127.0.0.1:1/0"
	for want, try := range map[string]struct {
		url  string
		opts redis.Options
	}{
		"KeepKey":     {url, redis.Options{}},
		"Prefix":      {url, redis.Options{KeepKey: 1, Prefix: "a{b}"}},
		"Buckets":     {url, redis.Options{KeepKey: 1, Buckets: 257}},
		"MaxConns":    {url, redis.Options{KeepKey: 1, MaxConns: -1}},
		"CallTimeout": {url, redis.Options{KeepKey: 1, CallTimeout: -1}},
		"URL":         {"redis://:hunter2@127.0.0.1:1/x", redis.Options{KeepKey: 1}},
		"URL ":        {"http://:hunter2@127.0.0.1:1", redis.Options{KeepKey: 1}},
		"URL  ":       {"redis://:hunter2@127.0.0.1:1/0?no_such=1", redis.Options{KeepKey: 1}},
	} {
		_, err := redis.Open(t.Context(), try.url, try.opts)
		if !errors.Is(err, redis.ErrOptions) || !strings.Contains(err.Error(), strings.TrimSpace(want)) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open with a wrong %s: %v", want, err)
		}
	}
	_, err := redis.Open(t.Context(), url, redis.Options{KeepKey: time.Hour})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1/0") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Open where nobody listens: %v", err)
	}
}

// answer is an error that a server has answered with.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

// TestEffects: what proves that nothing was written is named; anything else is in doubt.
func TestEffects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, "none"},
		{goredis.ErrPoolTimeout, "none"},
		{context.Canceled, "none"},
		{redis.ErrVolatile, "none"},
		{answer("OOM command not allowed when used memory > 'maxmemory'. script: 1234, on @user_script:93."), "none"},
		{answer("MISCONF Redis is configured to save RDB snapshots"), "none"},
		{answer("NOAUTH Authentication required."), "none"},
		{answer("NOPERM this user has no permissions to run the 'evalsha' command"), "none"},
		{answer("LOADING Redis is loading the dataset in memory"), "again"},
		{answer("MOVED 3999 127.0.0.1:6381"), "again"},
		{answer("TRYAGAIN Multiple keys request during rehashing of slot"), "again"},
		{answer("READONLY You can't write against a read only replica."), "again"},
		{answer("WRONGTYPE Operation against a key holding the wrong kind of value script: 12, on @user_script:7."), "broken"},
		{answer("ERR Error running script (call to f_12): @user_script:7: no"), "broken"},
		{io.EOF, "in doubt"},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "in doubt"},
		{context.DeadlineExceeded, "in doubt"},
		{errors.New("anything else"), "in doubt"},
	} {
		if got := redis.EffectOf(fmt.Errorf("wrapped: %w", c.err)); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

// TestGreeting: what fails before anything but a greeting was sent was not sent.
func TestGreeting(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() { // whoever connects is heard, and then cut off
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
	}()
	client := goredis.NewClient(&goredis.Options{
		Addr: l.Addr().String(), MaxRetries: -1, DisableIdentity: true, Protocol: 2,
		Dialer: redis.Dialer(&goredis.Options{DialTimeout: time.Second}),
	})
	defer func() { _ = client.Close() }()
	if err := client.Ping(t.Context()).Err(); redis.EffectOf(err) != "none" {
		t.Errorf("cut off in its greeting: %s: %v", redis.EffectOf(err), err)
	}
	conn, err := redis.Dialer(&goredis.Options{DialTimeout: time.Second})(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("*2\r\n$7\r\nevalsha\r\n$5\r\nhello\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); redis.EffectOf(err) != "in doubt" {
		t.Errorf("cut off after a script was sent: %s: %v", redis.EffectOf(err), err)
	}
}
