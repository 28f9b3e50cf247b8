# Sends operations as requests does with urllib3's Retry, which has to be told
# that a POST with an idempotency key may be sent again.
import sys
import uuid

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

url, count = sys.argv[1], int(sys.argv[2])
print(f"requests {requests.__version__}, urllib3 {urllib3.__version__}")
retry = Retry(total=5, backoff_factor=0.5, status_forcelist=[429, 500, 502, 503, 504], allowed_methods=None)
session = requests.Session()
session.mount("http://", HTTPAdapter(max_retries=retry))
for i in range(count):
    try:
        session.post(
            url + "/payments",
            json={"reference": f"order-{chr(97 + i)}{i}"},
            headers={"Idempotency-Key": str(uuid.uuid4())},
            timeout=10,
        )
    except requests.exceptions.RequestException:
        pass  # what it makes of it, the referee sees
