#!/usr/bin/env bash
set -euo pipefail
kubectl wait pod/web-server --namespace create-pod-test --for=condition=Ready --timeout=120s
image=$(kubectl get pod web-server --namespace create-pod-test -o jsonpath='{.spec.containers[0].image}')
case "$image" in
  *nginx*) echo "web-server runs $image" ;;
  *) echo "web-server runs $image, not nginx"; exit 1 ;;
esac
