package check

// longHelp is the text of the command's help above its flags.
const longHelp = `Send real requests to URL and tell, case by case, whether the server behind it
honours idempotency keys. Every case has real effects: only loopback is
contacted unless --allow-host names more.

If the first operation is not taken, up to 12 other ways are tried that servers
use (another header, quotes, UUID v7, a prefix, a field of the body, a form, a
token that is fetched first); the report begins with the flags that say so.
Elsewhere than on loopback that needs --max-effects as well.

{ref} in the body is unique to each operation. Effects are counted by --witness,
a URL that tells how many a reference had (a JSON pointer to the number stands
behind the #), else inferred from the ids in the answers. What the server is
able to do (be slow, fail, crash, forget, restart) is said with the other flags;
a case that needs more is skipped, and never counts as passed.

With --explore no case is run. Sequences of requests are drawn from --seed (repeats
in other forms, requests that differ in one place, overlaps, clients that leave,
failures, other keys in between), sent under fresh keys, and held against a model:
a key has one effect at most and one outcome, another request under it is
refused, and what was refused had no effect. What contradicts it is shortened
until each part is needed, tried three times more, and told with the requests that
show it. Elsewhere than on loopback that needs --max-effects; a quarter of
--max-effects and --max-requests is kept for what is found.

--volume runs other cases: some thousand keys and bodies, large requests, many keys beside one that is at
work, callers that share connections, and half a minute of silence. It finds hashes that are cut off, lock
tables, stores that let go by number, size or age, and state that leaks from one request to another. How much
it sends is said first; --max-requests and --max-effects bound it.

Exit status: 0 no failure; 1 a failure, or a known failure that passes; 2 the
call is wrong, or nothing was judged; 3 the target is unreachable, or takes no plain
operation (a 401 wants -H), or the suite itself failed; 4 nothing failed, but a safety case was not decided, or the run
ended by --timeout or --max-requests.`

// examples are the examples of its help.
const examples = `  oncehttp check http://127.0.0.1:8080/payments --witness 'http://127.0.0.1:8080/_effects?ref={ref}#/count'
  oncehttp check http://127.0.0.1:8080/payments --quick --format junit --out report.xml
  oncehttp check http://127.0.0.1:8080/payments --explain
  oncehttp check http://127.0.0.1:8080/payments --explore --seed 7 --max-effects 2000
  oncehttp check http://127.0.0.1:8080/payments --explore --for 60s
  oncehttp check list`
