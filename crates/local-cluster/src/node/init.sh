#!/bin/sh
# First process of a real node, in namespaces of its own: brings up the network and
# starts what runs on the node. The node ends when any of it does, and with the first process everything ends.
set -eu

trap 'exit 1' TERM

run() {
    name="$1"
    shift
    (
        "$@" >>"$LOGS/$name.log" 2>&1 || true
        echo "$name ended:"
        "$BUSYBOX" tail -n 5 "$LOGS/$name.log"
        kill -TERM 1
    ) &
}

# Nothing of the machine's own folders is written to.
mount --make-rprivate /
for folder in /run /var/log /var/lib/cni /var/lib/kubelet; do
    mkdir -p "$folder"
    mount -t tmpfs node "$folder"
done
mount --bind "$NODE" "$NODE"
mount --make-rshared "$NODE"

"$BUSYBOX" ip link set lo up
for address in $ADDRESSES; do
    "$BUSYBOX" ip address add "$address/32" dev lo
done

run containerd containerd --config "$CONFIG/containerd.toml"
until ctr --address "$RUNTIME" version >/dev/null 2>&1; do
    "$BUSYBOX" usleep 100000
done
ctr --address "$RUNTIME" --namespace k8s.io images import "$NODE/pause.tar"

run node-network "$NETWORK" -api-socket "$API" -proxy "$PROXY" -conf "$CONFIG/Corefile"
run kubelet "$KUBELET" --config "$CONFIG/kubelet.json" --kubeconfig "$CREDENTIALS" --root-dir "$NODE/kubelet" \
    --cert-dir "$NODE/kubelet/pki" --hostname-override "$NAME" --node-ip "$NODE_IP" --node-labels type=real

wait
