package place

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// NotLoaded returns a hint for an empty journal after a restore: the way in which its server may have ignored the backup. It returns "" if none is known.
func (p Place) NotLoaded() string {
	if !p.IsFile() && strings.HasPrefix(p.URL.Scheme, "redis") {
		return " (a Redis with appendonly yes loads no dump.rdb)"
	}
	return ""
}

// The parameters of a Redis URL defined by this command.
const (
	prefixParameter = "prefix"   // how the journal's keys begin
	keepParameter   = "keep_key" // how long used keys are remembered: a duration, or forever
)

// redisAt returns the URL for the Redis driver, and the journal's options in it. The URL must say for how long used keys are kept, since Redis holds them in memory.
func redisAt(at *url.URL) (string, redis.Options, error) {
	u, q := *at, at.Query()
	opts := redis.Options{Prefix: q.Get(prefixParameter)}
	switch keep := q.Get(keepParameter); keep {
	case "":
		return "", opts, fmt.Errorf("say in the URL for how long used keys are remembered, since Redis holds them in memory: ?%s=8760h, or forever", keepParameter)
	case "forever":
		opts.KeepKey = redis.KeepForever
	default:
		var err error
		if opts.KeepKey, err = time.ParseDuration(keep); err != nil || opts.KeepKey <= 0 {
			return "", opts, fmt.Errorf("%s %q in the URL: want a duration such as 8760h, or forever", keepParameter, words.Clip(keep))
		}
	}
	if _, err := strconv.Atoi(strings.Trim(u.Path, "/")); err != nil && strings.Trim(u.Path, "/") != "" {
		return "", opts, fmt.Errorf("the database %q in the URL is no number", words.Clip(strings.Trim(u.Path, "/")))
	}
	q.Del(prefixParameter)
	q.Del(keepParameter)
	u.RawQuery = q.Encode()
	if _, has := u.User.Password(); !has && os.Getenv("REDISCLI_AUTH") != "" {
		u.User = url.UserPassword(u.User.Username(), os.Getenv("REDISCLI_AUTH"))
	}
	return u.String(), opts, nil
}

// QuietRedis keeps the Redis library from printing failed connections: the command's own error tells of them. It must be called before the first client of the library
// is made.
func QuietRedis() { goredis.SetLogger(silent{}) }

// silent is a log for go-redis. It prints nothing.
type silent struct{}

// Printf drops a line of the Redis library's log. The command reports the errors of its calls itself.
func (silent) Printf(context.Context, string, ...any) {}

// openRedis opens the journal on a Redis server; read-only if at.Looks is set.
func openRedis(ctx context.Context, at Place) (persist.Journal, error) {
	text, opts, err := redisAt(at.URL)
	if err != nil {
		return nil, err
	}
	opts.ReadOnly = at.Looks
	j, err := redis.Open(ctx, text, opts)
	if err != nil {
		if wrong := wrongParameter(text, func(text string) error { _, err := goredis.ParseURL(text); return err }); wrong != nil {
			err = wrong
		}
		var missing interface{ NoJournal() string }
		if errors.As(err, &missing) {
			err = &terminal.SaidError{Text: fmt.Sprintf("there is no journal yet under the prefix %q; the first batch, send or work makes it", missing.NoJournal()), Err: err}
		}
		return nil, err
	}
	return j, nil
}
