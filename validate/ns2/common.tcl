# What all our ns-2 scripts share: arguments, lean packets of 1250 bytes, one bulk flow.

# Overwrites the defaults in the array `name` with arguments of the form key=value.
proc arguments {name} {
    upvar $name param
    foreach arg $::argv {
        if {![regexp {^(\w+)=(.*)$} $arg - key value] || ![info exists param($key)]} {
            puts stderr "unknown argument $arg; known: [lsort [array names param]]"
            exit 2
        }
        set param($key) $value
    }
}

# 1250 bytes on the wire, headers included; only the headers that these scripts use.
proc lean_packets {} {
    remove-all-packet-headers
    add-packet-header IP TCP Flags
    Agent/TCP set useHeaders_ false
    Agent/TCP set packetSize_ 1250
}

proc hop {from to rate delay limit} {
    global ns
    $ns duplex-link $from $to $rate $delay DropTail
    $ns queue-limit $from $to $limit
    $ns queue-limit $to $from $limit
}

# Starts a bulk flow at `start`; returns its agents. `ssthresh` 0 leaves ns-2's own, the window.
proc bulk {variant from to start ssthresh} {
    global ns
    set tcp [new Agent/TCP/$variant]
    set sink [new Agent/TCPSink]
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    if {$ssthresh > 0} { $ns at $start "$tcp set ssthresh_ $ssthresh" }
    $ns at $start "$ftp start"
    return [list $tcp $sink]
}

# What a flow has done so far, as the fields of a JSON object.
proc counters {tcp sink} {
    format {"bytes":%.0f,"sent":%d,"retransmissions":%d,"timeouts":%d} \
        [$sink set bytes_] [$tcp set ndatapack_] [$tcp set nrexmitpack_] [$tcp set nrexmit_]
}
