! SPDX-License-Identifier: MIT
! The library for Fortran 2008 programs that use MPI. Compile this file with
! the program: the format of .mod files depends on the compiler.
!
!     use laconic
!     type(laconic_algorithm) :: mean
!     call mean%open(MPI_COMM_WORLD, "powersgd:rank=4", "weight 784 512")
!     do step = 1, steps
!         ... gradient, a contiguous array of 784 * 512 reals ...
!         call mean%reduce(gradient)
!     end do
!     call mean%close()
!
! A layout is text with a line for each tensor: its name, rows and columns. C
! stores matrices by rows, Fortran by columns: the array a(m, n) is a tensor of
! n rows and m columns, its transpose.
!
! Errors: with `stat`, a call that fails sets it to a LAC_ERR value, and
! laconic_message returns the reason. Without, it prints the reason and ends the
! MPI job.
module laconic
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    implicit none
    private

    public :: laconic_algorithm, laconic_message
    public :: laconic_model, laconic_gradient

    ! The families: reduce is for gradients, mix for models.
    integer, parameter :: laconic_model = 0, laconic_gradient = 1

    integer(c_int), parameter :: ok = 0, err_invalid = -1
    integer(c_int), parameter :: dtype_f32 = 0, dtype_f64 = 3
    integer(c_int32_t), parameter :: rank_any = -1

    ! An algorithm, and this process as a worker of it.
    type :: laconic_algorithm
        private
        type(c_ptr) :: transport = c_null_ptr, layout = c_null_ptr
        type(c_ptr) :: topology = c_null_ptr, handle = c_null_ptr
        integer(c_int64_t) :: round = 0
        logical :: started = .false.
    contains
        procedure, public :: open => algorithm_open
        procedure, public :: close => algorithm_close
        procedure, public :: family => algorithm_family
        procedure, public :: rank => algorithm_rank
        procedure, public :: workers => algorithm_workers
        procedure, public :: bytes_sent => algorithm_bytes_sent
        ! call a%reduce(x [, stat]): x becomes its mean over all workers.
        generic, public :: reduce => reduce_float, reduce_double
        ! call a%mix(x [, update] [, stat]): x becomes its mean with those of
        ! the neighbours, plus the local update. The first call starts from x.
        generic, public :: mix => mix_float, mix_double
        procedure, private :: reduce_float, reduce_double
        procedure, private :: mix_float, mix_double
    end type

    type, bind(c) :: c_options
        integer(c_size_t) :: size
        type(c_ptr) :: spec, compressor, layout, topology, transport
        integer(c_int64_t) :: seed, session
        real(c_double) :: timeout
        logical(c_bool) :: training
        integer(c_int) :: nonfinite
        logical(c_bool) :: timing
        integer(c_int32_t) :: workers
        type(c_ptr) :: transport_name
    end type

    type, bind(c) :: c_slice
        integer(c_size_t) :: tensor
        integer(c_int) :: dtype
        type(c_ptr) :: in, out
    end type

    type, bind(c) :: c_tensor
        type(c_ptr) :: name
        integer(c_size_t) :: rows, cols, offset
        integer(c_int64_t) :: name_hash
    end type

    type, bind(c) :: c_traffic
        integer(c_int64_t) :: payload_bytes, wire_bytes, messages
    end type

    interface
        function lac_error_message() bind(c)
            import :: c_ptr
            type(c_ptr) :: lac_error_message
        end function

        function lac_fail_text(status, message) bind(c)
            import :: c_int, c_char
            integer(c_int), value :: status
            character(kind=c_char), intent(in) :: message(*)
            integer(c_int) :: lac_fail_text
        end function

        function lac_transport_join(t, spec, hub, rank, world) bind(c)
            import :: c_ptr, c_char, c_int, c_int32_t
            type(c_ptr), intent(out) :: t
            character(kind=c_char), intent(in) :: spec(*)
            type(c_ptr), value :: hub
            integer(c_int32_t), value :: rank, world
            integer(c_int) :: lac_transport_join
        end function

        function lac_transport_rank(t) bind(c)
            import :: c_ptr, c_int32_t
            type(c_ptr), value :: t
            integer(c_int32_t) :: lac_transport_rank
        end function

        function lac_transport_world(t) bind(c)
            import :: c_ptr, c_int32_t
            type(c_ptr), value :: t
            integer(c_int32_t) :: lac_transport_world
        end function

        subroutine lac_transport_abort(t, why) bind(c)
            import :: c_ptr
            type(c_ptr), value :: t, why
        end subroutine

        subroutine lac_transport_kill_job(t, code) bind(c)
            import :: c_ptr, c_int
            type(c_ptr), value :: t
            integer(c_int), value :: code
        end subroutine

        subroutine lac_transport_leave(t) bind(c)
            import :: c_ptr
            type(c_ptr), value :: t
        end subroutine

        function lac_layout_parse(layout, text, len) bind(c)
            import :: c_ptr, c_char, c_int, c_size_t
            type(c_ptr), intent(out) :: layout
            character(kind=c_char), intent(in) :: text(*)
            integer(c_size_t), value :: len
            integer(c_int) :: lac_layout_parse
        end function

        function lac_layout_count(layout) bind(c)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: layout
            integer(c_size_t) :: lac_layout_count
        end function

        function lac_layout_values(layout) bind(c)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: layout
            integer(c_size_t) :: lac_layout_values
        end function

        function lac_layout_tensor(layout, index) bind(c)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: layout
            integer(c_size_t), value :: index
            type(c_ptr) :: lac_layout_tensor
        end function

        subroutine lac_layout_close(layout) bind(c)
            import :: c_ptr
            type(c_ptr), value :: layout
        end subroutine

        function lac_topology_open(t, spec, workers, seed) bind(c)
            import :: c_ptr, c_char, c_int, c_int32_t, c_int64_t
            type(c_ptr), intent(out) :: t
            character(kind=c_char), intent(in) :: spec(*)
            integer(c_int32_t), value :: workers
            integer(c_int64_t), value :: seed
            integer(c_int) :: lac_topology_open
        end function

        subroutine lac_topology_close(t) bind(c)
            import :: c_ptr
            type(c_ptr), value :: t
        end subroutine

        subroutine lac_algorithm_options_init(options, size) bind(c)
            import :: c_options, c_size_t
            type(c_options), intent(out) :: options
            integer(c_size_t), value :: size
        end subroutine

        function lac_algorithm_open(a, options) bind(c)
            import :: c_ptr, c_int, c_options
            type(c_ptr), intent(out) :: a
            type(c_options), intent(in) :: options
            integer(c_int) :: lac_algorithm_open
        end function

        function lac_algorithm_family(a) bind(c)
            import :: c_ptr, c_int
            type(c_ptr), value :: a
            integer(c_int) :: lac_algorithm_family
        end function

        function lac_algorithm_traffic(a) bind(c)
            import :: c_ptr, c_traffic
            type(c_ptr), value :: a
            type(c_traffic) :: lac_algorithm_traffic
        end function

        function lac_algorithm_start(a, slices, count) bind(c)
            import :: c_ptr, c_int, c_size_t, c_slice
            type(c_ptr), value :: a
            type(c_slice), intent(in) :: slices(*)
            integer(c_size_t), value :: count
            integer(c_int) :: lac_algorithm_start
        end function

        function lac_algorithm_mix(a, round, slices, updates, count) bind(c)
            import :: c_ptr, c_int, c_size_t, c_int64_t, c_slice
            type(c_ptr), value :: a, updates
            integer(c_int64_t), value :: round
            type(c_slice), intent(in) :: slices(*)
            integer(c_size_t), value :: count
            integer(c_int) :: lac_algorithm_mix
        end function

        function lac_algorithm_reduce(a, round, slices, count) bind(c)
            import :: c_ptr, c_int, c_size_t, c_int64_t, c_slice
            type(c_ptr), value :: a
            integer(c_int64_t), value :: round
            type(c_slice), intent(in) :: slices(*)
            integer(c_size_t), value :: count
            integer(c_int) :: lac_algorithm_reduce
        end function

        subroutine lac_algorithm_close(a) bind(c)
            import :: c_ptr
            type(c_ptr), value :: a
        end subroutine
    end interface

contains

    ! Returns the message of the last call that failed.
    function laconic_message() result(message)
        character(len=:), allocatable :: message
        character(kind=c_char), pointer :: text(:)
        type(c_ptr) :: start
        integer :: length, i
        start = lac_error_message()
        length = 0
        do
            call c_f_pointer(start, text, [length + 1])
            if (text(length + 1) == c_null_char) exit
            length = length + 1
        end do
        allocate (character(len=length) :: message)
        do i = 1, length
            message(i:i) = text(i)
        end do
    end function

    ! Joins the processes of a communicator, which all call this with the same
    ! arguments. `communicator` is an integer of the module mpi, or %MPI_VAL of
    ! mpi_f08. Model algorithms need a topology, such as "ring".
    subroutine algorithm_open(self, communicator, spec, layout, compressor, &
            topology, stat)
        class(laconic_algorithm), intent(inout) :: self
        integer, intent(in) :: communicator
        character(len=*), intent(in) :: spec, layout
        character(len=*), intent(in), optional :: compressor, topology
        integer, intent(out), optional :: stat
        integer(c_int) :: status
        call self%close()
        status = open_all(self, communicator, spec, layout, compressor, &
            topology)
        if (status == ok) then
            if (present(stat)) stat = ok
            return
        end if
        call conclude(self, status, stat)
        call self%close()
    end subroutine

    function open_all(self, communicator, spec, layout, compressor, &
            topology) result(status)
        class(laconic_algorithm), intent(inout) :: self
        integer, intent(in) :: communicator
        character(len=*), intent(in) :: spec, layout
        character(len=*), intent(in), optional :: compressor, topology
        integer(c_int) :: status
        character(len=32) :: address
        character(len=:), allocatable, target :: spec_c, compressor_c
        type(c_options) :: options
        write (address, "(a, i0)") "mpi:comm=", communicator
        status = lac_transport_join(self%transport, &
            trim(address) // c_null_char, c_null_ptr, rank_any, rank_any)
        if (status /= ok) return
        status = lac_layout_parse(self%layout, layout, &
            len(layout, c_size_t))
        if (status /= ok) return
        if (present(topology)) then
            status = lac_topology_open(self%topology, &
                trim(topology) // c_null_char, &
                lac_transport_world(self%transport), 1_c_int64_t)
            if (status /= ok) return
        end if
        call lac_algorithm_options_init(options, c_sizeof(options))
        spec_c = trim(spec) // c_null_char
        options%spec = c_loc(spec_c)
        if (present(compressor)) then
            compressor_c = trim(compressor) // c_null_char
            options%compressor = c_loc(compressor_c)
        end if
        options%layout = self%layout
        options%topology = self%topology
        options%transport = self%transport
        status = lac_algorithm_open(self%handle, options)
    end function

    ! Leaves the group and releases everything. The program may then finalise
    ! MPI.
    subroutine algorithm_close(self)
        class(laconic_algorithm), intent(inout) :: self
        ! Peers may read this worker's last messages until it has left.
        call lac_transport_leave(self%transport)
        call lac_algorithm_close(self%handle)
        call lac_topology_close(self%topology)
        call lac_layout_close(self%layout)
        self%transport = c_null_ptr
        self%handle = c_null_ptr
        self%topology = c_null_ptr
        self%layout = c_null_ptr
        self%round = 0
        self%started = .false.
    end subroutine

    integer function algorithm_family(self)
        class(laconic_algorithm), intent(in) :: self
        algorithm_family = lac_algorithm_family(self%handle)
    end function

    integer function algorithm_rank(self)
        class(laconic_algorithm), intent(in) :: self
        algorithm_rank = lac_transport_rank(self%transport)
    end function

    integer function algorithm_workers(self)
        class(laconic_algorithm), intent(in) :: self
        algorithm_workers = lac_transport_world(self%transport)
    end function

    ! The bytes of payload that this worker has sent.
    integer(c_int64_t) function algorithm_bytes_sent(self)
        class(laconic_algorithm), intent(in) :: self
        type(c_traffic) :: traffic
        traffic = lac_algorithm_traffic(self%handle)
        algorithm_bytes_sent = traffic%payload_bytes
    end function

    subroutine reduce_float(self, x, stat)
        class(laconic_algorithm), intent(inout) :: self
        real(c_float), intent(inout), target, contiguous :: x(:)
        integer, intent(out), optional :: stat
        call reduce_all(self, c_loc(x), size(x, kind=c_size_t), dtype_f32, &
            stat)
    end subroutine

    subroutine reduce_double(self, x, stat)
        class(laconic_algorithm), intent(inout) :: self
        real(c_double), intent(inout), target, contiguous :: x(:)
        integer, intent(out), optional :: stat
        call reduce_all(self, c_loc(x), size(x, kind=c_size_t), dtype_f64, &
            stat)
    end subroutine

    subroutine mix_float(self, x, update, stat)
        class(laconic_algorithm), intent(inout) :: self
        real(c_float), intent(inout), target, contiguous :: x(:)
        real(c_float), intent(in), target, contiguous, optional :: update(:)
        integer, intent(out), optional :: stat
        call mix_all(self, c_loc(x), size(x, kind=c_size_t), dtype_f32, &
            update, stat)
    end subroutine

    ! Updates are single precision for models of any.
    subroutine mix_double(self, x, update, stat)
        class(laconic_algorithm), intent(inout) :: self
        real(c_double), intent(inout), target, contiguous :: x(:)
        real(c_float), intent(in), target, contiguous, optional :: update(:)
        integer, intent(out), optional :: stat
        call mix_all(self, c_loc(x), size(x, kind=c_size_t), dtype_f64, &
            update, stat)
    end subroutine

    subroutine reduce_all(self, x, n, dtype, stat)
        class(laconic_algorithm), intent(inout) :: self
        type(c_ptr), intent(in) :: x
        integer(c_size_t), intent(in) :: n
        integer(c_int), intent(in) :: dtype
        integer, intent(out), optional :: stat
        integer(c_int) :: status
        type(c_slice), allocatable :: slices(:)
        status = check_values(self, "values", n)
        if (status == ok) then
            slices = slices_of(self, x, dtype)
            status = lac_algorithm_reduce(self%handle, self%round, slices, &
                size(slices, kind=c_size_t))
        end if
        call conclude(self, status, stat)
        if (status == ok) self%round = self%round + 1
    end subroutine

    subroutine mix_all(self, x, n, dtype, update, stat)
        class(laconic_algorithm), intent(inout) :: self
        type(c_ptr), intent(in) :: x
        integer(c_size_t), intent(in) :: n
        integer(c_int), intent(in) :: dtype
        real(c_float), intent(in), target, contiguous, optional :: update(:)
        integer, intent(out), optional :: stat
        integer(c_int) :: status
        type(c_slice), allocatable :: slices(:)
        type(c_ptr), allocatable, target :: updates(:)
        type(c_ptr) :: given
        status = check_values(self, "values", n)
        given = c_null_ptr
        if (status == ok .and. present(update)) then
            status = check_values(self, "updates", &
                size(update, kind=c_size_t))
            if (status == ok) updates = updates_of(self, c_loc(update))
            if (status == ok) given = c_loc(updates)
        end if
        if (status == ok) then
            slices = slices_of(self, x, dtype)
            if (.not. self%started) then
                status = lac_algorithm_start(self%handle, slices, &
                    size(slices, kind=c_size_t))
            end if
        end if
        if (status == ok) then
            self%started = .true.
            status = lac_algorithm_mix(self%handle, self%round, slices, &
                given, size(slices, kind=c_size_t))
        end if
        call conclude(self, status, stat)
        if (status == ok) self%round = self%round + 1
    end subroutine

    ! Fails unless the algorithm is open and its layout has n values.
    function check_values(self, what, n) result(status)
        class(laconic_algorithm), intent(in) :: self
        character(len=*), intent(in) :: what
        integer(c_size_t), intent(in) :: n
        integer(c_int) :: status
        character(len=120) :: message
        status = ok
        if (.not. c_associated(self%handle)) then
            status = lac_fail_text(err_invalid, &
                "laconic: the algorithm is not open" // c_null_char)
        else if (n /= lac_layout_values(self%layout)) then
            write (message, "(a, a, i0, a, i0)") what, ": ", n, &
                ", the layout has ", lac_layout_values(self%layout)
            status = lac_fail_text(err_invalid, trim(message) // c_null_char)
        end if
    end function

    ! Returns the slices of a flat array, one for each tensor.
    function slices_of(self, x, dtype) result(slices)
        class(laconic_algorithm), intent(in) :: self
        type(c_ptr), intent(in) :: x
        integer(c_int), intent(in) :: dtype
        type(c_slice), allocatable :: slices(:)
        integer(c_size_t) :: i, width
        type(c_ptr) :: place
        width = merge(8_c_size_t, 4_c_size_t, dtype == dtype_f64)
        allocate (slices(lac_layout_count(self%layout)))
        do i = 1, size(slices, kind=c_size_t)
            place = moved(x, width * offset_of(self, i - 1))
            slices(i) = c_slice(i - 1, dtype, place, place)
        end do
    end function

    function updates_of(self, update) result(updates)
        class(laconic_algorithm), intent(in) :: self
        type(c_ptr), intent(in) :: update
        type(c_ptr), allocatable :: updates(:)
        integer(c_size_t) :: i
        allocate (updates(lac_layout_count(self%layout)))
        do i = 1, size(updates, kind=c_size_t)
            updates(i) = moved(update, 4 * offset_of(self, i - 1))
        end do
    end function

    function offset_of(self, index) result(offset)
        class(laconic_algorithm), intent(in) :: self
        integer(c_size_t), intent(in) :: index
        integer(c_size_t) :: offset
        type(c_tensor), pointer :: tensor
        call c_f_pointer(lac_layout_tensor(self%layout, index), tensor)
        offset = tensor%offset
    end function

    ! The address `bytes` after another one.
    function moved(address, bytes) result(place)
        type(c_ptr), intent(in) :: address
        integer(c_size_t), intent(in) :: bytes
        type(c_ptr) :: place
        place = transfer(transfer(address, 0_c_intptr_t) + &
            int(bytes, c_intptr_t), place)
    end function

    ! Sets `stat`, or ends the job after a failure.
    subroutine conclude(self, status, stat)
        class(laconic_algorithm), intent(in) :: self
        integer(c_int), intent(in) :: status
        integer, intent(out), optional :: stat
        if (present(stat)) stat = status
        if (status == ok .or. present(stat)) return
        write (error_unit, "(a)") laconic_message()
        flush (error_unit)
        if (c_associated(self%transport)) then
            call lac_transport_abort(self%transport, lac_error_message())
            call lac_transport_kill_job(self%transport, 1_c_int)
        end if
        error stop 1
    end subroutine
end module
