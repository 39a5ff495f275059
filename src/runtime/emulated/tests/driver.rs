//! What the driver half refuses, and memory.
use super::rig::Rig;
use crate::runtime::driver::{
    AllocateMemory, CreateEvent, CreateQueue, Driver, EventType, GpuId, MemoryFlags, QueueId,
    QueueType,
};
use crate::runtime::emulated::DriverError;
use crate::runtime::instrument::Access;

#[test]
fn what_the_device_does_not_take_is_refused_by_name() {
    let rig = Rig::new(1, true);
    let (base, _) = rig.allocate(4096);
    let (ring, _) = rig.allocate(4096);
    let good = rig.request(ring, 4096, base);
    for (request, words) in [
        (
            CreateQueue {
                queue_type: QueueType::Sdma,
                ring_bytes: 3 * 64,
                ..good
            },
            "SDMA ring of 192 bytes",
        ),
        (
            CreateQueue {
                ring_bytes: 3 * 64,
                ..good
            },
            "power of two",
        ),
        (
            CreateQueue {
                ring_bytes: 8192,
                ..good
            },
            "ring",
        ),
        (
            CreateQueue {
                read_pointer_address: 64,
                ..good
            },
            "read pointer",
        ),
        (
            CreateQueue {
                gpu: GpuId(1),
                ..good
            },
            "no GPU",
        ),
    ] {
        let error = rig.device.create_queue(&request).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let vram = |size_bytes: u64| {
        let address = rig.device.reserve_address(4096, 4096).unwrap();
        rig.device.allocate_memory(&AllocateMemory {
            gpu: rig.gpu,
            address,
            size_bytes,
            flags: MemoryFlags::VRAM,
            user_address: None,
        })
    };
    assert!(
        matches!(vram(8192), Err(DriverError::Argument { .. })),
        "more than was reserved"
    );
    let address = rig.device.reserve_address(65 << 30, 4096).unwrap();
    let too_much = rig.device.allocate_memory(&AllocateMemory {
        gpu: rig.gpu,
        address,
        size_bytes: 65 << 30,
        flags: MemoryFlags::VRAM,
        user_address: None,
    });
    let error = too_much.unwrap_err().to_string();
    assert!(
        error.contains("68719476736 of 68719476736 bytes"),
        "{error}"
    );
    assert!(vram(4096).is_ok());
}

#[test]
fn user_memory_is_mapped_at_its_own_address_until_it_is_freed() {
    let rig = Rig::new(1, true);
    let mut host = vec![3u8; 5000];
    let address = host.as_mut_ptr() as u64;
    let memory = rig
        .device
        .allocate_memory(&AllocateMemory {
            gpu: rig.gpu,
            address,
            size_bytes: 5000,
            flags: MemoryFlags::USERPTR | MemoryFlags::WRITABLE,
            user_address: Some(address),
        })
        .unwrap();
    assert!(!rig.vm().check(address, 1, Access::Read));
    rig.device.map_memory(memory.handle, &[rig.gpu]).unwrap();
    rig.vm().write(address + 10, &[9; 4]).unwrap();
    assert!(!rig.vm().check(address + 5000, 1, Access::Read));
    rig.device.free_memory(memory.handle).unwrap();
    assert!(!rig.vm().check(address, 1, Access::Read));
    assert_eq!(host[9..15], [3, 9, 9, 9, 9, 3]);
}

/// One queue of a GPU has global wave sync at a time; it is given back by itself or with its queue.
#[test]
fn global_wave_sync_belongs_to_one_queue() {
    let rig = Rig::new(1, true);
    let (one, two) = (rig.queue(64), rig.queue(64));
    let set = |id, on| rig.device.set_global_sync(id, on);
    let busy = |result| {
        matches!(
            result,
            Err(DriverError::System {
                source: rustix::io::Errno::BUSY,
                ..
            })
        )
    };
    assert!(matches!(
        set(one.created.id, false),
        Err(DriverError::Argument { .. })
    ));
    assert!(matches!(
        set(QueueId(77), true),
        Err(DriverError::Argument { .. })
    ));
    set(one.created.id, true).unwrap();
    assert!(busy(set(one.created.id, true)) && busy(set(two.created.id, true)));
    set(one.created.id, false).unwrap();
    set(two.created.id, true).unwrap();
    rig.device.destroy_queue(two.created.id).unwrap();
    set(one.created.id, true).unwrap();
}

/// KFD has 4096 slots, of which the first is nobody's: who asks for more hears what has run out.
#[test]
fn case_71_events_that_run_out_are_said_to_be_events() {
    let rig = Rig::new(1, true);
    let (_, page) = rig.allocate(32768);
    let mut request = CreateEvent {
        event_type: EventType::Signal,
        auto_reset: true,
        event_page: Some(page),
    };
    for _ in 0..4095 {
        rig.device.create_event(&request).unwrap();
        request.event_page = None;
    }
    let error = rig.device.create_event(&request).unwrap_err();
    assert!(matches!(error, DriverError::Exhausted { .. }), "{error:?}");
    assert!(
        error.to_string().contains("all 4095 events are taken"),
        "{error}"
    );
}
